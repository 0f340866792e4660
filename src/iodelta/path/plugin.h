/*
 * What the parts of the plugin share.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu.h"

/* Instructions that cost more than others: Intel's Software Developer's Manual, volume 2, appendix A. */
enum class { LOCKED, FENCE, CLOCK, INDIRECT, STRING, CLASSES };

/* What an instruction does to the stack of calls. */
enum step { NO_STEP, CALL, RETURN, INTERRUPT_RETURN };

/* Where the kernel is entered other than by a system call. */
enum entry { NO_ENTRY, INTERRUPT, EXCEPTION };

struct block {
    uint64_t pc, instructions, executions;
    uint8_t held[CLASSES];
    struct block *next;
    uint64_t end;        /* of its code */
    uint64_t epoch;      /* that counted its code last */
    uint32_t number;     /* in the file of the tree; 0: not written yet */
    uint32_t node;       /* that executed it last, and where that counts it */
    struct counted *counted;
    enum entry entry;
    uint8_t followed;    /* its calls are part of the tree */
    uint8_t boundary;    /* an I/O begins with it */
};

/* plugin.c */
void *must_calloc(size_t number, size_t size);

/* tree.c */
void tree_open(FILE *file);
void tree_block(struct block *block);
void tree_watch(struct qemu_plugin_insn *insn, enum step step);
void tree_forget(void);
void tree_flush(unsigned phase);

/* footprint.c */
void footprint_open(FILE *file);
void footprint_block(struct block *block, unsigned phase);
void footprint_watch(struct qemu_plugin_insn *insn, int followed);
void footprint_flush(void);
