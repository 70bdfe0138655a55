import { afterEach, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { storeCases } from '../../src/testing/index.ts'
import { storeCases as ourStores } from '../support/stores.ts'

describe.each(ourStores)('the published cases hold on $name', ({ open }) => {
  const closers: (() => void)[] = []
  afterEach(() => {
    for (const close of closers.splice(0)) close()
  })

  const cases = storeCases(async () => {
    const { store, close } = await open()
    closers.push(close)
    return store
  })

  test.each(cases)('%s', async (_, run) => run())
})

test('the cases tell a store that charges what it refuses', async () => {
  const cases = storeCases(() => {
    const store = memoryStore()
    return { mode: 'sync', shared: false, apply: (step) => store.apply(step.op === 'ask' ? { ...step, op: 'take' } : step) }
  })
  const results = await Promise.allSettled(cases.map(([, run]) => run()))
  expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(10)
})
