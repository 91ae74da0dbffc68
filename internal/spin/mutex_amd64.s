//go:build !race

#include "go_asm.h"
#include "textflag.h"

// func unlock(m *Mutex)
TEXT ·unlock(SB), NOSPLIT, $0-8
	MOVQ m+0(FP), AX
	CMPB Mutex_queued(AX), $0
	JNE  later
	MOVL $0, Mutex_state(AX)
	RET

later:
	JMP ·unlockLater(SB)
