/** The tapes and stories of test/vectors: all of them, and those whose algorithms the library has. */
import { readFileSync } from 'node:fs'
import type { LimitData, Story, Tape } from '../../src/testing/index.ts'
import { isKnown } from './limits.ts'

const read = <T>(name: string): T[] => JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8')) as T[]

export const allTapes: readonly Tape[] = ['published', 'derived', 'seeds'].flatMap((name) => read<Tape>(name))
export const allStories: readonly Story[] = read<Story>('stories')

export const tapes = allTapes.filter(({ limit }) => isKnown(limit))
export const stories = allStories.filter((story) => limitsOf(story).every(isKnown))

function limitsOf({ limit, limits = {} }: Story): LimitData[] {
  return [...(limit === undefined ? [] : [limit]), ...Object.values(limits)]
}
