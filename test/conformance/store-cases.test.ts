import { afterEach, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/index.ts'
import { Step } from '../../src/stores/step.ts'
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
    return {
      mode: 'sync',
      shared: false,
      open(scope, nowUs) {
        const states = store.open(scope, nowUs)
        const charging = (step: Step) => (step.op === 'ask' ? new Step('take', step.scope, step.parts, -1, -1, undefined) : step)
        return { apply: (step, isTold) => states.apply(charging(step), isTold), close: () => states.close() }
      },
    }
  })
  const results = await Promise.allSettled(cases.map(([, run]) => run()))
  expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(10)
})

test('the cases tell a shared store that does not say how callers wait', async () => {
  const memory = memoryStore()
  const cases = storeCases(() => ({ mode: 'sync', shared: true, open: (scope, nowUs) => memory.open(scope, nowUs) }))
  const [, run] = cases.find(([name]) => name.includes('wait in line')) ?? []
  await expect(run?.()).rejects.toThrow('SharedQueue')
})
