#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A self-test takes minutes: it shows its progress beside a bar, and one that is interrupted prints
# so in words, in its last line and by its exit code.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
python3 -c 'import pty' > /dev/null 2>&1 || skip_all 'python3 has no pty'
scratch
cd "$scratch" || exit 99
unset HARNESS_ACTIVE CI NO_COLOR TAP_VERSION DURAKIT_ZOO

# Runs durakit selftest with standard error on a terminal of 60 columns, and sends SIGTERM as soon
# as that says what PATTERN is; its exit code.  Standard error goes to err.txt.
cat > interrupt-at.py <<'PYTHON'
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
test = subprocess.Popen(sys.argv[2:], stdout=open("out.txt", "wb"), stderr=theirs)
os.close(theirs)
said = b""
sent = False
while True:
    ready = select.select([ours], [], [], 120)[0]
    try:
        piece = os.read(ours, 65536) if ready else b""
    except OSError:
        piece = b""
    said += piece
    if not ready or (not sent and re.search(sys.argv[1].encode(), said)):
        sent = True
        test.send_signal(signal.SIGTERM)
    if ready and not piece:
        break
open("err.txt", "wb").write(said)
sys.exit(test.wait())
PYTHON
interrupt_at() {
  pattern=$1
  shift
  python3 interrupt-at.py "$pattern" "$DURAKIT" selftest --model "$MODEL" "$@"
}

interrupt_at 'the model: [1-9][0-9]* of [0-9]+' --format human
is $? 5 'interrupted in the middle: exit 5'
tr '\r' '\n' < err.txt > err.lines
like "$(cat err.lines)" '^\[#* *\] the model: [0-9]* of [0-9]*' 'it told how far it is beside a bar'
is "$(awk 'length > 59' err.lines)" '' 'which no terminal of 60 columns breaks'
like "$(cat err.lines)" '^durakit: interrupted by SIGTERM: not all of the kit' \
  'and that it was interrupted'
like "$(tail -n 1 out.txt)" \
  '^SELFTEST=INCOMPLETE points=[0-9]* failed=0; mutants not judged; zoo not judged; seconds=' \
  'the last line shows that, too'

interrupt_at 'the model: [1-9][0-9]* of [0-9]+' --format tap
is $? 5 'with TAP: exit 5'
like "$(cat out.txt)" '^Bail out!  interrupted by SIGTERM' 'with TAP: it bails out'
is "$(grep -c '^1\.\.' out.txt)" 0 'with TAP: what came is no plan'

interrupt_at 'canaries: 1 of ' --format human
is $? 5 'among the canaries: exit 5'
is "$(grep -c '^not so' out.txt)" 0 'among the canaries: nothing is called wrong'

done_testing
