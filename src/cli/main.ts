#!/usr/bin/env node
import { LIBRARY_COMMANDS } from './commands.ts'
import { type Command, MISUSED, runCommand, told } from './run.ts'

const OF_THE_SERVICE = {
  serve: 'runs the service (in a clone of the project: npm start)',
  check: 'says in plain words what a configuration of the service means',
  schema: 'prints the JSON Schema of a configuration of the service',
}

/** The answer to commands of the service, which are not in this package. */
function elsewhere(name: string, summary: string): Command {
  const usage = `'${name}' is a command of the service, which this package does not hold.

In a clone of the project, \`npm start -- sluice.yaml\` installs, builds and runs the service. After \`npm run build:server\` its command line is
\`node server/dist/server/src/main.js ${name}\`. deploy/Dockerfile makes an image of it.`
  return { summary, usage, run: () => told(usage, MISUSED) }
}

const service = Object.fromEntries(Object.entries(OF_THE_SERVICE).map(([name, summary]) => [name, elsewhere(name, summary)]))

process.exitCode = await runCommand({ ...LIBRARY_COMMANDS, ...service }, process.argv.slice(2))
