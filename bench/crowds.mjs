// Crowds: 10,000 calls made at once.

export const WAITERS = 10_000

/** Where the waiters of a crowd stand. */
export const CROWDS = {
  'one-key': { title: '10,000 waiters on one key', keys: 1, key: 'keys[0]' },
  'keys-10k': { title: 'one waiter on each of 10,000 keys', keys: WAITERS, key: 'keys[i]' },
}

/** Keys such as 'user:123456': what a server would build from a request. */
export function keysOf(count) {
  return Array.from({ length: count }, (_, n) => `user:${100_000 + n}`)
}

/**
 * A crowd: calls made at once, one for each waiter, and the wait for all of them. Made anew from
 * text for each contestant, for the reason that loop.mjs gives. `key` is JavaScript: where waiter
 * `i` takes its key from. `onFirst` is told when the first of them has had its turn.
 */
export function crowdOf(name, call, keys, key) {
  const source = `// ${name}
  return function crowd(onFirst) {
    const promises = new Array(${WAITERS})
    for (let i = 0; i < ${WAITERS}; i++) promises[i] = call(${key})
    if (onFirst !== undefined) promises[0].then(onFirst)
    return Promise.all(promises)
  }`
  return new Function('call', 'keys', source)(call, keys)
}
