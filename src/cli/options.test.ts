/** Command-line options: what is accepted, and the message about each mistake. */
import { expect, test } from 'vitest'
import { SluiceError } from '../errors.ts'
import { onlyOptions, parsedOptions } from './options.ts'

const KNOWN = { port: { type: 'string' }, 'grpc-port': { type: 'string' }, json: { type: 'boolean' } } as const

test('options and other arguments are told apart', () => {
  const { values, positionals } = parsedOptions(['--port=80', 'a.yaml', '--json', '--grpc-port', '81', '--', '--port'], KNOWN)
  expect({ ...values }).toEqual({ port: '80', json: true, 'grpc-port': '81' })
  expect(positionals).toEqual(['a.yaml', '--port'])
})

test.each([
  [['--prot', '80'], 'there is no option --prot: did you mean --port?'],
  [['--grpcPort', '80'], 'there is no option --grpcPort: did you mean --grpc-port?'],
  [['--JSON'], 'there is no option --JSON: did you mean --json?'],
  [['--colour=blue'], 'there is no option --colour'],
  [['--constructor'], 'there is no option --constructor'],
  [['-p', '80'], 'there is no option -p'],
  [['--port'], '--port wants a value'],
  [['--port', '--json'], "--port wants a value, and '--json' looks like an option: --port=--json makes it a value"],
  [['--json=no'], "--json takes no value, and has 'no'"],
  [['--json', 'stray'], "'stray' belongs to no option"],
])('%j: %s', (args, message) => {
  const error = (() => {
    try {
      return onlyOptions(args, KNOWN)
    } catch (thrown) {
      return thrown
    }
  })()
  expect(error).toBeInstanceOf(SluiceError)
  expect(error).toMatchObject({ code: 'CONFIG', message })
})
