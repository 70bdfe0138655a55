import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { limitFrom } from '../../src/config/index.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { playStory, playTape } from '../../src/testing/index.ts'
import { storeCases } from '../support/stores.ts'
import { stories, tapes } from '../support/vectors.ts'

describe.each(storeCases)('the published tables hold on $name', ({ open }) => {
  let store: Store
  let close: () => void
  beforeEach(async () => {
    ;({ store, close } = await open())
  })
  afterEach(() => close())

  test.each(tapes)('tape $id', async (tape) => {
    expect(await playTape(tape, { store, limitFrom })).toEqual([])
  })

  test.each(stories)('story $id', async (story) => {
    expect(await playStory(story, { store, limitFrom })).toEqual([])
  })
})

test('a tape that states something else is told apart', async () => {
  const limit = { type: 'gcra', rate: '1/s', burst: 1 }
  const tape = { id: 'wrong', source: 'none', limit, tape: [{ atMs: 0, cost: 1, outcome: 'limited', remaining: 0 }] }
  expect(await playTape(tape, { store: memoryStore(), limitFrom })).toEqual(['wrong row 0: outcome is allowed, expected limited'])
})
