/*
 * A firmware of 64 KiB that tests moved.c on a machine of two CPUs without a kernel: each writes 100 times a word of its
 * own in a line that both share, in turn, as `alternate false` does. So 200 lines move and no CPU reads what the other
 * wrote. Real mode; marks at 0xf8000 (moved.c, marks=f8000). It ends qemu through isa-debug-exit at port 0xf4.
 */
#define MARK(number) call marks + 16 * (number)
#define IO 1000
#define AWAKE 1001
#define ASLEEP 1002
#define SELF 1003
#define ROUNDS 100

/* Memory of the test: how far each CPU is, and the shared line. */
#define READY0 0x2000
#define READY1 0x2040
#define LINE 0x2080

.code16
.text
.globl _start
_start: /* both CPUs begin here: the first by the jump at the end, the other, at 0xf000:0, by its start-up interrupt */
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %ss
	testb $1, READY0
	jnz second

first:
	mov $0x1000, %sp
	movb $1, READY0
	/* Segments of 4 GiB, to reach the interrupt controller. */
	lgdtl %cs:table
	mov %cr0, %eax
	or $1, %al
	mov %eax, %cr0
	mov $8, %bx
	mov %bx, %ds
	and $0xfe, %al
	mov %eax, %cr0
	xor %bx, %bx
	mov %bx, %ds
	mov $0xfee00300, %edi
	movl $0xc4500, (%edi) /* to all others: reset */
	mov $1000, %cx
1:	pause
	loop 1b
	movl $0xc46f0, (%edi) /* start at 0xf0000 */
	MARK(SELF)
2:	pause
	testb $1, READY1
	jz 2b
	MARK(AWAKE)
	MARK(1)
	movb $3, READY0
	mov $ROUNDS, %cx
3:	MARK(IO)
	movl %ecx, LINE
	pause
	loop 3b
	MARK(ASLEEP)
4:	pause
	testb $4, READY1
	jz 4b
	MARK(0)
	mov $0xf4, %dx
	xor %ax, %ax
	outw %ax, %dx
5:	hlt
	jmp 5b

second:
	mov $0x1800, %sp
	MARK(SELF + 1)
	movb $1, READY1
1:	pause
	testb $2, READY0
	jz 1b
	mov $ROUNDS, %cx
2:	MARK(IO)
	movl %ecx, LINE + 8
	pause
	loop 2b
	MARK(ASLEEP)
	movb $4, READY1
3:	hlt
	jmp 3b

.balign 8
descriptors:
	.quad 0, 0x00cf92000000ffff
table:
	.word 15
	.long 0xf0000 + descriptors - _start

.org 0x8000
marks:
.rept 1024
.balign 16
ret
.endr

.org 0xfff0 /* where a CPU begins */
	ljmp $0xf000, $0
.org 0xffff
	.byte 0
