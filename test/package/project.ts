/**
 * Packs the package as npm would publish it, and installs the tarball into a project of its own, as
 * a user does.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { output } from './run.ts'

export const root = fileURLToPath(new URL('../../', import.meta.url))

interface Manifest {
  readonly name: string
  readonly bin: Readonly<Record<string, string>>
  readonly engines: { readonly node: string }
  readonly exports: Readonly<Record<string, unknown>>
}

export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest

/** What a user can import that is code: 'sluice', 'sluice/redis' and so on. */
export const specifiers = Object.keys(manifest.exports)
  .filter((subpath) => !subpath.endsWith('.json'))
  .map((subpath) => subpath.replace(/^\./, manifest.name))

export interface Project {
  readonly folder: string
  readonly tarball: string
  /** The installed package. */
  readonly package: string
  /** The paths of its files, as `npm pack` tells them. */
  readonly files: readonly string[]
  remove(): void
}

export async function projectOfAUser(): Promise<Project> {
  if (!existsSync(join(root, 'dist/index.js')))
    throw new Error('There is no dist/ to pack: run `npm run build`. `npm test` does it by itself.')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-package-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    return { folder, remove, ...(await packedAndInstalled(folder)) }
  } catch (error) {
    remove()
    throw error
  }
}

async function packedAndInstalled(folder: string): Promise<Pick<Project, 'tarball' | 'package' | 'files'>> {
  const { filename, files } = await pack(folder)
  cpSync(join(import.meta.dirname, 'user'), folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  await output('npm', ['install', '--no-audit', '--no-fund', '--offline', `./${filename}`], folder)
  standIn(folder)
  return {
    tarball: join(folder, filename),
    package: join(folder, 'node_modules', manifest.name),
    files: files.map(({ path }) => path),
  }
}

/**
 * Beside `sluice/nest` there is always Nest, beside `sluice/otel` OpenTelemetry. Nothing has to be
 * fetched: of Nest what is needed stands in for it.
 */
function standIn(folder: string): void {
  cpSync(join(root, 'node_modules/@opentelemetry/api'), join(folder, 'node_modules/@opentelemetry/api'), { recursive: true })
  standInFor(folder, '@nestjs/common', {
    'index.js': 'export class HttpException extends Error {}\nexport const Catch = () => () => {}\nexport const Inject = Catch\n',
    'index.d.ts': [
      'export declare class HttpException extends Error {',
      '  constructor(response: string | object, status: number)',
      '  getResponse(): string | object',
      '}',
    ].join('\n'),
    'constants.js': "export const GUARDS_METADATA = '__guards__'\n",
    'constants.d.ts': 'export declare const GUARDS_METADATA: string\n',
  })
  const classes = ['DiscoveryModule', 'DiscoveryService', 'MetadataScanner']
  standInFor(folder, '@nestjs/core', {
    'index.js': classes.map((name) => `export class ${name} {}`).join('\n'),
    'index.d.ts': classes.map((name) => `export declare class ${name} {}`).join('\n'),
  })
}

function standInFor(folder: string, name: string, files: Readonly<Record<string, string>>): void {
  const path = join(folder, 'node_modules', name)
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, 'package.json'), JSON.stringify({ name, version: '12.0.0', type: 'module', main: 'index.js' }))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text)
}

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

async function pack(folder: string): Promise<Packed> {
  const [packed] = JSON.parse(await output('npm', ['pack', '--json', '--pack-destination', folder], root)) as Packed[]
  return packed as Packed
}

/**
 * The algorithms by the folders of their sources: the name of the factory and the name of the
 * folder.
 */
export const algorithms = readdirSync(join(root, 'src/algorithms'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => ({ folder: name, factory: name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()) }))
