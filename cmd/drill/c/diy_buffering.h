/*
 * The drill: a buffer of your own between a program and the kernel.
 *
 * You write diy_buffering.c. Keep these declarations as they are: the checker and
 * the benchmark call them. README.md in the directory above has the steps.
 */
#ifndef DIY_BUFFERING_H
#define DIY_BUFFERING_H

#include <stddef.h>

/* DIY_BUFFER is the size of a stream's buffer, in bytes. */
#define DIY_BUFFER 4096

/* A DIY_FILE is an open file with its buffer. What is in it is your affair. */
typedef struct diy_file DIY_FILE;

/* diy_fopen opens a file: "r" reads it, "w" makes it or empties it. NULL and errno if it fails. */
DIY_FILE *diy_fopen(const char *path, const char *mode);

/*
 * diy_fread reads nmemb elements of size bytes each into p. It returns how many whole
 * elements it read: fewer only at the end of the file (diy_feof) or after an error
 * (diy_ferror).
 */
size_t diy_fread(void *p, size_t size, size_t nmemb, DIY_FILE *f);

/*
 * diy_fwrite takes nmemb elements of size bytes each from p. It returns how many whole
 * elements it took: fewer only after an error (diy_ferror). What it took is in the buffer or
 * in the file.
 */
size_t diy_fwrite(const void *p, size_t size, size_t nmemb, DIY_FILE *f);

/* diy_fflush hands what the buffer holds to the kernel. It returns 0, or -1 if not all of it went. */
int diy_fflush(DIY_FILE *f);

/* diy_fclose flushes, closes and frees. It returns 0, or -1 if one of them failed. */
int diy_fclose(DIY_FILE *f);

/* diy_feof is true after a read met the end of the file; diy_ferror after a failed read or write. */
int diy_feof(const DIY_FILE *f);
int diy_ferror(const DIY_FILE *f);

#endif
