/** The example of guessed passwords, attacked: it is what people paste. */
import { beforeEach, expect, test, vi } from 'vitest'

const HOME = '198.51.100.7'
const ROBOT = '203.0.113.9'
const RIGHT = 'secret'

let login: (account: string, address: string, password: string) => Promise<string>
let users: { isRight(account: string, password: string): Promise<boolean> }

/** With nothing counted but what the example itself does: it shows an attack at 'ann'. */
beforeEach(async () => {
  vi.resetModules()
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  // Of the package, as users have it: ./dist.
  ;({ login, users } = await import('../../examples/login-brute-force.ts'))
  vi.restoreAllMocks()
})

const guessed = (answers: readonly string[]) => answers.filter((answer) => answer === 'wrong password').length

test.each(['at once', 'one by one'])('10,000 guesses from one address, %s: five are looked at, and the address is used up', async (how) => {
  const answers: string[] = []
  const address = '203.0.113.77'
  if (how === 'one by one') for (let k = 0; k < 10_000; k++) answers.push(await login('carol', address, `guess ${k}`))
  else answers.push(...(await Promise.all(Array.from({ length: 10_000 }, (_, k) => login('carol', address, `guess ${k}`)))))
  expect(guessed(answers)).toBe(5)
  expect(await login('carol', address, RIGHT)).toBe('try again later')
  expect(await login('dave', address, RIGHT)).toBe('try again later')
  expect(await login('carol', HOME, RIGHT)).toBe('welcome')
})

test('guesses at many accounts from one address: twenty are looked at', async () => {
  const answers = await Promise.all(Array.from({ length: 1_000 }, (_, k) => login(`user ${k}`, '203.0.113.78', 'password')))
  expect(guessed(answers)).toBe(20)
})

test('guesses at one account from many addresses: fifty are looked at, and the owner gets in at home meanwhile', async () => {
  expect(await login('carol', HOME, RIGHT)).toBe('welcome')
  const answers: string[] = []
  for (let k = 0; k < 10_000; k++) {
    answers.push(await login('carol', `192.0.${k >> 8}.${k & 255}`, `guess ${k}`))
    if (k % 1_000 === 999) expect(await login('carol', HOME, RIGHT)).toBe('welcome')
  }
  expect(guessed(answers)).toBe(50)
  // As the example says.
  expect(await login('carol', '198.18.0.1', RIGHT)).toBe('try again later')
  expect(await login('dave', '198.18.0.1', RIGHT)).toBe('welcome')
})

test('the owner, attacked by all of this before, gets in at home, as often as she likes and after a mistake', async () => {
  for (let k = 0; k < 4; k++) expect(await login('ann', HOME, 'mistyped')).toBe('wrong password')
  for (let k = 0; k < 100; k++) expect(await login('ann', HOME, RIGHT)).toBe('welcome')
  expect(await login('ann', ROBOT, RIGHT)).toBe('try again later')
})

test.each(['', ' ', 'x'.repeat(100_000), 'a\0b', '\ud800', '{a}:b'])(
  'the account %j, as a client may write it, has limits of its own',
  async (account) => {
    expect(await login(account, HOME, RIGHT)).toBe('welcome')
    const answers: string[] = []
    for (let k = 0; k < 10; k++) answers.push(await login(account, '203.0.113.79', `guess ${k}`))
    expect(guessed(answers)).toBe(5)
    expect(await login(`${account}y`, '203.0.113.79', RIGHT)).toBe('welcome')
  },
)

test('a password that cannot be looked at is no failure', async () => {
  const down = vi.spyOn(users, 'isRight').mockRejectedValue(new Error('the database is away'))
  for (let k = 0; k < 100; k++) await expect(login('erin', HOME, RIGHT)).rejects.toThrow('the database is away')
  down.mockRestore()
  for (let k = 0; k < 4; k++) expect(await login('erin', HOME, 'mistyped')).toBe('wrong password')
  expect(await login('erin', HOME, RIGHT)).toBe('welcome')
})
