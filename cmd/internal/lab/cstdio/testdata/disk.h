/*
 * A disk is a file in memory that misbehaves as told: it works in part, is
 * interrupted, fills up and fails. It keeps count.
 */
#ifndef DISK_H
#define DISK_H

#include "df.h"

struct disk {
	unsigned char *bytes;
	size_t holds;         /* as malloc knows it */
	size_t len, at;       /* written so far; read so far */
	size_t room;          /* 0 is no limit */
	unsigned seed;        /* not 0: a third of the calls is interrupted, others are short */
	int fail_read_at;     /* the number of the read, from 1, that fails with fail; 0 is none */
	int fail_write_at;    /* the same for writes */
	int fail_times;       /* so many in a row */
	int fail, fail_close; /* errnos */
	int lie;              /* what a write or read says it did, if it is not 0; -2 is none */
	int reads, writes, closes;
};

struct df_io disk_io(struct disk *d);
void disk_free(struct disk *d);

/* disturb decides what becomes of a call for n bytes: how many it shall do, or -1 for EINTR. */
ssize_t disturb(unsigned *seed, size_t n);

#endif
