//go:build !race

#include "textflag.h"

// func StoreRelease(addr *atomic.Int32, v int32)
TEXT ·StoreRelease(SB), NOSPLIT, $0-12
	MOVQ addr+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET
