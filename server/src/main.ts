#!/usr/bin/env node
/** The command line of the service. What it does not know itself is for the library's. */
import { parseArgs } from 'node:util'
import { ConfigError } from './config/config.ts'
import { explained } from './config/explain.ts'
import { configSchema } from './config/schema.ts'
import { loadConfig } from './running/reload.ts'
import { SERVE_OPTIONS, SERVE_USAGE, serve } from './serve.ts'
import { libraryCommands } from './sluice.ts'

const USAGE = `${SERVE_USAGE}

sluice check FILE

  Says in plain words what a configuration means; or what is wrong with it, with line and column.

sluice schema

  Prints the JSON Schema of a configuration, for editors.

sluice simulate, sluice inspect

  The commands of the library: sluice simulate --help`

const OWN: Readonly<Record<string, (args: string[]) => number | Promise<number>>> = {
  check: checkCommand,
  schema: () => said(JSON.stringify(configSchema, null, 2)),
  async serve(args) {
    const { values, positionals } = parseArgs({ args, options: SERVE_OPTIONS, allowPositionals: true })
    if (values.help) return said(USAGE)
    if (positionals.length > 1) return refused(`serve takes one file, not ${positionals.length}`)
    await serve(positionals[0], values)
    return 0
  },
}

function checkCommand(args: string[]): number {
  const { positionals } = parseArgs({ args, allowPositionals: true })
  const [file, ...others] = positionals
  if (file === undefined || others.length > 0) return refused('check wants one file, such as sluice.yaml')
  return said(explained(loadConfig(file).config))
}

async function main([command, ...args]: string[]): Promise<void> {
  if (command === undefined || ['--help', '-h', 'help'].includes(command)) {
    said(USAGE)
    return
  }
  const own = Object.hasOwn(OWN, command) ? OWN[command] : undefined
  if (own === undefined) {
    await libraryCommands()
    return
  }
  try {
    process.exitCode = await own(args)
  } catch (error) {
    process.exitCode = failed(error)
  }
}

function said(text: string): number {
  console.log(text)
  return 0
}

function refused(reason: string): number {
  console.error(`sluice: ${reason}\n\n${USAGE}`)
  return 2
}

/** What a person can put right is told without a stack. */
function failed(error: unknown): number {
  if (!(error instanceof Error)) throw error
  const code = String((error as { code?: unknown }).code ?? '')
  if (code.startsWith('ERR_PARSE_ARGS')) return refused(error.message)
  console.error(error instanceof ConfigError ? error.message : `sluice: ${error.message}`)
  return 1
}

await main(process.argv.slice(2))
