/*
 * A firmware of 64 KiB that tests plugin.c with tree.c and footprint.c on one CPU without a kernel: it names the function
 * `work` as where an I/O begins, arms the plugin, and calls it 50 times in phase 1 and 100 times in phase 2. Real mode;
 * marks at 0xf4000, followed code from 0xf0000 on. It ends qemu through isa-debug-exit at port 0xf4.
 */
#define MARK(number) call marks + 16 * (number)
#define DIGIT(number) MARK(1024 + (number))
#define BOUNDARY 1040
#define ARM 1043
#define ROUNDS 50

.code16
.text
.globl _start
_start:
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %ss
	mov $0x1000, %sp
	DIGIT(0xf) /* 0xf2000: work */
	DIGIT(2)
	DIGIT(0)
	DIGIT(0)
	DIGIT(0)
	MARK(BOUNDARY)
	MARK(ARM)
	mov $1000, %cx
1:	pause
	loop 1b
	MARK(1)
	mov $ROUNDS, %cx
	call rounds
	MARK(0)
	MARK(2)
	mov $(2 * ROUNDS), %cx
	call rounds
	MARK(0)
	mov $0xf4, %dx
	xor %ax, %ax
	outw %ax, %dx
2:	hlt
	jmp 2b

.balign 64
rounds:
	call work
	loop rounds
	ret

.org 0x2000
work: /* 4 loads and 5 stores with the call of it; 5 lines of data, 4 of them written, in 2 pages; 3 lines of code in 2 */
	movl 0x3000, %eax
	movl %eax, 0x3040
	lock incl 0x3080
	mfence
	call inner
	ret

.balign 64
inner:
	movl %eax, 0x30be /* across two lines */
	ret

.org 0x4000
marks:
.rept 1044
.balign 16
ret
.endr

.org 0xfff0 /* where a CPU begins */
	ljmp $0xf000, $0
.org 0xffff
	.byte 0
