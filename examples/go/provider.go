// SPDX-License-Identifier: 0BSD

// provider.go - what a provider in Go needs at the boundary.  It stands before minimal.c, whose
// rules it leaves as they are: each operation enters Go, calls the one in C, and every upcall comes
// back through Go on its way to the host.  boundary.c has the tables of functions.
//
//   - No panic crosses the boundary, for that would end the host's process: every operation runs
//     inside of guarded, which makes a refusal of a panic.
//   - C keeps no pointer to Go's memory: it keeps a number (cgo.Handle).
//   - Goroutines end in close: the runtime stays when the handle is gone, the handle's own do not.
//
// Put your own store where minimal.c is: its operations in the place of C.inner_operation.
package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"runtime"
	"runtime/cgo"
	"sort"
	"strings"
	"unsafe"
)

var names = [...]string{
	C.ENQUEUE_FOR_ORCHESTRATOR:      "enqueue_for_orchestrator",
	C.FETCH_ORCHESTRATION_ITEM:      "fetch_orchestration_item",
	C.ACK_ORCHESTRATION_ITEM:        "ack_orchestration_item",
	C.ABANDON_ORCHESTRATION_ITEM:    "abandon_orchestration_item",
	C.RENEW_ORCHESTRATION_ITEM_LOCK: "renew_orchestration_item_lock",
	C.FETCH_WORK_ITEM:               "fetch_work_item",
	C.ACK_WORK_ITEM:                 "ack_work_item",
	C.ABANDON_WORK_ITEM:             "abandon_work_item",
	C.RENEW_WORK_ITEM_LOCK:          "renew_work_item_lock",
	C.READ_HISTORY:                  "read_history",
	C.ENQUEUE_FOR_WORKER:            "enqueue_for_worker",
}

// What Go keeps for a handle.
type handle struct {
	panicIn string      // the operation that panics, to see what becomes of it; "": none
	calls   chan string // to the goroutine that counts them
	counted chan string // its result, once calls is closed
}

func of(s *C.struct_store) *handle { return cgo.Handle(s.go_).Value().(*handle) }

// guarded runs an operation; a panic becomes its refusal. [ABI-7]
func guarded(c *C.struct_crossing, operation string, body func() C.dk_status) (status C.dk_status) {
	defer func() {
		if caught := recover(); caught != nil {
			why := fmt.Sprintf("%s: panicked: %v", operation, caught)
			status = C.host_fail(c, C.DK_INTERNAL, C.CString(why), C.size_t(len(why)))
		}
	}()
	return body()
}

// count counts the calls of a handle, until close.
func count(calls <-chan string, counted chan<- string) {
	n := map[string]int{}
	for operation := range calls {
		n[operation]++
	}
	var parts []string
	for operation, times := range n {
		parts = append(parts, fmt.Sprintf("%s=%d", operation, times))
	}
	sort.Strings(parts)
	counted <- strings.Join(parts, " ")
}

func log(s *C.struct_store, line string) { C.host_log(s, C.CString(line), C.size_t(len(line))) }

func setting(open *C.struct_dk_open, key string) string {
	for _, s := range unsafe.Slice(open.settings, int(open.n_settings)) {
		if C.GoString(s.key) == key {
			return C.GoStringN(s.value.ptr, C.int(s.value.len))
		}
	}
	return ""
}

//export goOpen
func goOpen(c *C.struct_crossing, open *C.struct_dk_open) C.dk_status {
	return guarded(c, "open", func() C.dk_status {
		h := &handle{
			panicIn: setting(open, "panic"),
			calls:   make(chan string),
			counted: make(chan string),
		}
		if h.panicIn == "open" {
			panic("the setting `panic` names this operation")
		}
		if status := C.inner_open(c, open); status != C.DK_OK {
			return status
		}
		c.store.go_ = C.uintptr_t(cgo.NewHandle(h))
		go count(h.calls, h.counted)
		log(c.store, "minimal-go: opened")
		return C.DK_OK
	})
}

// There is no call to refuse: a panic in here can only be dropped.
//
//export goClose
func goClose(s *C.struct_store) {
	defer func() { _ = recover() }()
	defer cgo.Handle(s.go_).Delete()
	C.inner_close(s)
	h := of(s)
	close(h.calls)
	log(s, "minimal-go: closed after "+<-h.counted)
	runtime.GC() // only to show that it runs: a provider need not call it
}

//export goOperation
func goOperation(c *C.struct_crossing, o *C.struct_operation) C.dk_status {
	h, operation := of(c.store), names[o.number]
	return guarded(c, operation, func() C.dk_status {
		h.calls <- operation
		if h.panicIn == operation {
			panic("the setting `panic` names this operation")
		}
		return C.inner_operation(c, o)
	})
}

//export goUpcall
func goUpcall(c *C.struct_crossing, u *C.struct_upcall) C.dk_status {
	return C.host_upcall(c, u)
}

func main() {}
