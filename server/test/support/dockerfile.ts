/**
 * Runs a Dockerfile without an engine: the same files are copied and the same commands run, in a
 * folder instead of an image. Only the instructions that ours uses; any other is an error. Node is
 * this machine's own instead of the base image's.
 */
import { cpSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { output } from '../../../test/package/run.ts'

export interface Instruction {
  readonly name: string
  readonly text: string
}

/** A stage, as a folder that stands for its root. */
export interface Stage {
  readonly root: string
  workdir: string
  readonly env: Record<string, string>
  /** Instructions that only describe: USER, HEALTHCHECK, ENTRYPOINT, CMD ... */
  readonly said: Record<string, string>
}

export function instructionsOf(dockerfile: string): Instruction[] {
  const lines = dockerfile
    .replace(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name, text] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? []
      if (name === undefined || text === undefined) throw new Error(`not an instruction: ${line}`)
      return { name, text: text.replace(/\s+/g, ' ') }
    })
}

/** Builds in `folder`; gives the last stage. */
export async function built(instructions: readonly Instruction[], context: string, folder: string): Promise<Stage> {
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const { name, text } of instructions) {
    if (name === 'FROM') {
      const title = / AS (\w+)$/.exec(text)?.[1] ?? 'last'
      stage = { root: join(folder, title), workdir: '/', env: {}, said: {} }
      stages.set(title, stage)
    } else if (stage === undefined) throw new Error(`${name} before FROM`)
    else await done(stage, name, text, context, stages)
  }
  return stage as Stage
}

async function done(stage: Stage, name: string, text: string, context: string, stages: ReadonlyMap<string, Stage>): Promise<void> {
  if (name === 'WORKDIR') {
    stage.workdir = text
    mkdirSync(join(stage.root, text), { recursive: true })
  } else if (name === 'ENV') {
    const [variable, value] = text.split('=') as [string, string]
    stage.env[variable] = value
  } else if (name === 'RUN') await output('sh', ['-c', text], join(stage.root, stage.workdir))
  else if (name === 'COPY') copied(stage, text, context, stages)
  else if (['USER', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD'].includes(name)) stage.said[name] = text
  else throw new Error(`nothing here knows ${name}`)
}

function copied(stage: Stage, text: string, context: string, stages: ReadonlyMap<string, Stage>): void {
  const [, from, paths] = /^(?:--from=(\w+) )?(.*)$/.exec(text) as unknown as [string, string | undefined, string]
  const [target, ...sources] = paths.split(' ').reverse() as [string, ...string[]]
  const base = from === undefined ? context : (stages.get(from) as Stage).root
  const isLeftOut = from === undefined ? ignoredBy(readFileSync(join(context, '.dockerignore'), 'utf8')) : () => false
  for (const source of sources) {
    const path = join(base, source)
    const isFolder = statSync(path).isDirectory()
    // Of a folder its content is copied, and a file into what ends with a slash.
    const into = join(stage.root, resolve(stage.workdir, target), isFolder || !target.endsWith('/') ? '' : basename(source))
    cpSync(path, into, { recursive: true, verbatimSymlinks: true, filter: (each) => !isLeftOut(relative(context, each)) })
  }
}

/** The last pattern that fits decides; what lies below something that fits does too. */
export function ignoredBy(dockerignore: string): (path: string) => boolean {
  const patterns = dockerignore
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ brings: line.startsWith('!'), fits: matcher(line.replace(/^!/, '')) }))
  return (path) => {
    const last = patterns.findLast(({ fits }) => fits.test(path))
    return last !== undefined && !last.brings
  }
}

function matcher(pattern: string): RegExp {
  const text = pattern
    .replaceAll('.', '\\.')
    .replaceAll('**/', '(.+/)?')
    .replace(/(?<!\.)\*/g, '[^/]+')
  return new RegExp(`^${text}(/|$)`)
}
