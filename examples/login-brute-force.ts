// Guessing passwords. Wrong ones are counted three ways: for an account from one address, for one
// address, and for an account from all addresses at which its owner has never logged in. So guesses
// from elsewhere do not lock Ann out at home.
//
// It does not notice one password that is tried at many accounts from many addresses. Wrong
// passwords from Ann's own network, 5 at her account or 20 at any, keep her out there until they
// have ceased for 15 minutes. While many addresses guess at her account, she cannot log in at a new
// one: send her a link by mail. Write accounts as your database does ('Ann' is 'ann'), addresses as
// `byIp` does: told by a proxy that you trust, and IPv6 by its /56.
import { createHash } from 'node:crypto'
import { createLimiter, slidingLog } from 'sluice'

const failures = createLimiter(
  {
    pair: slidingLog({ limit: 5, window: '15min' }),
    address: slidingLog({ limit: 20, window: '15min' }),
    account: slidingLog({ limit: 50, window: '1h' }),
  },
  { name: 'login' }, // with several processes: store: redisStore(client)
)
const knownAt = new Set<string>() // in production: a table beside the accounts
// in production: argon2.verify
export const users = { isRight: async (_account: string, password: string) => password === 'secret' }

export async function login(account: string, address: string, password: string): Promise<string> {
  // A key has 1 to 1,024 characters, what a client writes any number.
  const who = createHash('sha256').update(account).digest('hex')
  const pair = `${address} ${who}`
  const keys = { pair, address, account: who }
  // Taken before the password is looked at: of many guesses at once, too, five are looked at.
  const attempt = await failures.consume(keys, { pair: 1, address: 1, account: knownAt.has(pair) ? 0 : 1 })
  if (!attempt.allowed) {
    // A refusal takes nothing by itself. This uses up the address that goes on, never the account.
    await failures.charge(keys, { pair: 0, address: 1, account: 0 })
    return 'try again later'
  }
  let isWrong = false
  try {
    isWrong = !(await users.isRight(account, password))
  } finally {
    if (!isWrong) await attempt.settle(0) // given back, also if isRight threw: only failures count
  }
  if (isWrong) return 'wrong password'
  knownAt.add(pair)
  return 'welcome'
}

const HOME = '198.51.100.7'
console.log(`Ann, at home: ${await login('ann', HOME, 'secret')}`)

const guesses = Array.from({ length: 10_000 }, (_, n) => `guess ${n}`)
async function attack(who: string, from: (n: number) => string): Promise<void> {
  const answers = await Promise.all(guesses.map((guess, n) => login('ann', from(n), guess)))
  const looked = answers.filter((answer) => answer === 'wrong password').length
  console.log(`10,000 guesses at once, ${who}: ${looked} passwords were looked at`)
}

await attack('from one address', () => '203.0.113.9')
console.log(`that address, at Bob's account: ${await login('bob', '203.0.113.9', 'guess')}`)
await attack('each from another address', (n) => `192.0.${n >> 8}.${n & 255}`)
console.log(`Ann, at home: ${await login('ann', HOME, 'secret')}`)
console.log(`Ann, at a hotel: ${await login('ann', '198.18.0.1', 'secret')}`)

// prints:
// Ann, at home: welcome
// 10,000 guesses at once, from one address: 5 passwords were looked at
// that address, at Bob's account: try again later
// 10,000 guesses at once, each from another address: 45 passwords were looked at
// Ann, at home: welcome
// Ann, at a hotel: try again later
