/** The tapes and stories of test/vectors. */
import { readFileSync } from 'node:fs'
import type { Story, Tape } from '../../src/testing/index.ts'

const read = <T>(name: string): T[] => JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8')) as T[]

export const tapes: readonly Tape[] = ['published', 'derived', 'seeds'].flatMap((name) => read<Tape>(name))
export const stories: readonly Story[] = read<Story>('stories')
