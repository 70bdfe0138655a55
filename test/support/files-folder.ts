import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** Files in memory where there are such: a disk is waited for whenever a file is made. */
export const filesFolder: string = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
