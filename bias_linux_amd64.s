//go:build !race

#include "textflag.h"

// func enterLoan(at *atomic.Pointer[loan]) *loan
TEXT ·enterLoan(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), AX
	MOVQ (AX), CX
	TESTQ CX, CX
	JZ   no
	MOVQ SP, DX
	SHRQ $11, DX
	CMPQ DX, 0(CX)   // region
	JNE  no
	CMPL 8(CX), $0   // inside
	JNE  no
	MOVL $1, 8(CX)
	CMPQ CX, (AX)    // does the loan still stand?
	JNE  late
	MOVQ CX, ret+8(FP)
	RET
late:
	MOVL $0, 8(CX)
no:
	MOVQ $0, ret+8(FP)
	RET

// func stackRegion() uintptr
TEXT ·stackRegion(SB), NOSPLIT, $0-8
	MOVQ SP, AX
	SHRQ $11, AX
	MOVQ AX, ret+0(FP)
	RET
