#!/usr/bin/env node
/** The command line of the service, which has the commands of the library too. */
import { ConfigError } from './config/config.ts'
import { explained } from './config/explain.ts'
import { configSchema } from './config/schema.ts'
import { loadConfig } from './running/reload.ts'
import { SERVE_OPTIONS, SERVE_USAGE, serve } from './serve.ts'
import { type Command, FAILED, LIBRARY_COMMANDS, misused, parsedOptions, runCommand, said } from './sluice.ts'

const OWN: Readonly<Record<string, Command>> = {
  serve: {
    summary: 'runs the service',
    usage: SERVE_USAGE,
    async run(args) {
      const { values, positionals } = parsedOptions(args, SERVE_OPTIONS)
      return orFailed(async () => {
        await serve(positionals, values)
        return 0
      })
    },
  },
  check: {
    summary: 'says in plain words what a configuration means; or every mistake in it, with line and column',
    usage: `sluice check FILE ...

  Says in plain words what a configuration means; or every mistake in it, with line and column, and exit code ${FAILED}. Several files, or a folder of
  them, are one configuration, as for serve.`,
    run(args) {
      const { positionals } = parsedOptions(args, {})
      if (positionals.length === 0) return misused('check', 'check wants a file, such as sluice.yaml')
      return orFailed(async () => said(explained(loadConfig(positionals).config)))
    },
  },
  schema: {
    summary: 'prints the JSON Schema of a configuration, for editors',
    usage: `sluice schema

  Prints the JSON Schema of a configuration, for editors. In the first line of a configuration: # yaml-language-server: $schema=FILE`,
    run: () => said(JSON.stringify(configSchema, null, 2)),
  },
}

/** What a person can put right is told without a stack. */
async function orFailed(run: () => Promise<number>): Promise<number> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Error)) throw error
    console.error(error instanceof ConfigError ? error.message : `sluice: ${error.message}`)
    return FAILED
  }
}

process.exitCode = await runCommand({ ...OWN, ...LIBRARY_COMMANDS }, process.argv.slice(2))
