//go:build !race

#include "go_asm.h"
#include "textflag.h"

// func writeByte(l *Lane, c byte) error
TEXT ·writeByte(SB), NOSPLIT, $0-32
	MOVQ    l+0(FP), AX
	MOVBLZX c+8(FP), CX
	MOVLQSX Lane_n(AX), DX
	CMPQ    DX, (Lane_buf+8)(AX)
	JAE     beyond
	MOVQ    Lane_buf(AX), BX
	MOVB    CX, (BX)(DX*1)
	INCQ    DX
	MOVL    DX, Lane_n(AX)         // publishes the byte
	MOVQ    Lane_byteLimit(AX), BX
	CMPL    DX, (BX)               // and only then looks at the limit
	JGE     later
	MOVQ    $0, ret_itable+16(FP)
	MOVQ    $0, ret_data+24(FP)
	RET

later:
	JMP ·writeByteLater(SB)

beyond:
	JMP ·writeByteBeyond(SB)
