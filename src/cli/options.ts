/**
 * The options of a command. What is wrong with them is told in the words of this command line,
 * before anything runs.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearest } from '../config/nearest.ts'
import { SluiceError } from '../errors.ts'

type Known = NonNullable<ParseArgsConfig['options']>

type Parsed<Options extends Known> = ReturnType<typeof parseArgs<{ args: string[]; options: Options; allowPositionals: true }>>

/** Values by option, and the arguments that belong to none. */
export function parsedOptions<const Options extends Known>(args: readonly string[], options: Options): Parsed<Options> {
  const { tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true })
  for (const token of tokens) if (token.kind === 'option') checkOption(token, options)
  return parseArgs({ args: [...args], options, allowPositionals: true })
}

/** Values of a command that takes nothing but options. */
export function onlyOptions<const Options extends Known>(args: readonly string[], options: Options): Parsed<Options>['values'] {
  const { values, positionals } = parsedOptions(args, options)
  if (positionals.length > 0) throw wrong(`'${positionals[0]}' belongs to no option`)
  return values
}

interface Written {
  readonly name: string
  /** With its dashes. */
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function checkOption({ name, rawName, value, inlineValue }: Written, options: Known): void {
  const known = Object.hasOwn(options, name) ? options[name] : undefined
  if (known === undefined) throw unknown(rawName, Object.keys(options))
  if (known.type === 'boolean' && value !== undefined) throw wrong(`${rawName} takes no value, and has '${value}'`)
  if (known.type === 'boolean') return
  if (value === undefined) throw wrong(`${rawName} wants a value`)
  if (!inlineValue && /^-./.test(value))
    throw wrong(`${rawName} wants a value, and '${value}' looks like an option: ${rawName}=${value} makes it a value`)
}

function unknown(rawName: string, names: readonly string[]): SluiceError {
  const meant = nearest(rawName, names)
  return wrong(`there is no option ${rawName}${meant === undefined ? '' : `: did you mean --${meant}?`}`)
}

const wrong = (message: string): SluiceError => new SluiceError('CONFIG', message)
