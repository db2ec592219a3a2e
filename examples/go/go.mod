// SPDX-License-Identifier: 0BSD
module minimal-go

go 1.21
