import { readFileSync } from 'node:fs'

/**
 * Of the package: its description lies two folders above, from the sources and from what is built
 * of them.
 */
export const VERSION: string = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version
