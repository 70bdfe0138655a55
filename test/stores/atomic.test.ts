/**
 * The model check explores the operations as `Atomics` makes them. Here those of WebAssembly are
 * held against them: whatever is done, they answer the same and leave the same words, so what was
 * proved of one is true of both.
 */
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { type AtomicOperations, atomicOperations } from '../../src/stores/shared-memory/atomic.ts'
import { sharedBytes } from '../../src/stores/shared-memory/bytes.ts'

const WORDS = 8
/** Written by a fence and never read. */
const FENCE = WORDS

interface Form {
  readonly operations: AtomicOperations
  readonly ints: Int32Array
}

afterEach(() => vi.unstubAllGlobals())

function form(hasWasm: boolean): Form {
  if (!hasWasm) vi.stubGlobal('WebAssembly', undefined)
  const bytes = sharedBytes(4 * (WORDS + 2))
  expect(bytes.memory !== undefined).toBe(hasWasm)
  const operations = atomicOperations(bytes)
  vi.unstubAllGlobals()
  return { operations, ints: new Int32Array(bytes.buffer, 0, WORDS) }
}

// Few values, so that what is expected is often there; and those at the ends of 32 bits.
const value = fc.constantFrom(0, 1, -1, 2 ** 31 - 1, -(2 ** 31))
const index = fc.nat(WORDS - 1)
const call: fc.Arbitrary<(operations: AtomicOperations) => unknown> = fc.oneof(
  index.map((at) => (operations: AtomicOperations) => operations.load(at)),
  fc.tuple(index, value).map(
    ([at, next]) =>
      (operations: AtomicOperations) =>
        operations.store(at, next),
  ),
  fc.tuple(index, value).map(
    ([at, held]) =>
      (operations: AtomicOperations) =>
        operations.isStill(at, held, FENCE),
  ),
  fc.tuple(index, value, value).map(
    ([at, held, next]) =>
      (operations: AtomicOperations) =>
        operations.swap(at, held, next),
  ),
  fc.tuple(index, value, value, value, value).map(
    ([at, low, high, nextLow, nextHigh]) =>
      (operations: AtomicOperations) =>
        operations.swapPair(at & ~1, low, high, nextLow, nextHigh),
  ),
)

test('WebAssembly does the same as Atomics', () => {
  let swapped = 0
  const [usual, other] = [form(false), form(true)]
  fc.assert(
    fc.property(fc.array(value, { minLength: WORDS, maxLength: WORDS }), fc.array(call, { maxLength: 30 }), (words, calls) => {
      for (const { ints } of [usual, other]) ints.set(words)
      for (const each of calls) {
        const answer = each(usual.operations)
        expect(each(other.operations)).toBe(answer)
        expect([...other.ints]).toEqual([...usual.ints])
        if (answer === true) swapped += 1
      }
    }),
    { numRuns: 500, seed: 20260417 },
  )
  expect(swapped).toBeGreaterThan(100)
})
