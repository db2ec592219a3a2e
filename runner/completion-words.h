/* SPDX-License-Identifier: Apache-2.0 */
/* What the shell asks to complete a line: the command's first word, and what answers it. */
#ifndef DK_RUNNER_COMPLETION_WORDS_H
#define DK_RUNNER_COMPLETION_WORDS_H

#define COMPLETION_WORDS "--completion-words"
int completion_words_main(int argc, char **argv);

#endif
