/** Bundles what a browser would get, with the package as it is installed. */
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type OutputChunk } from 'rolldown'
import { minifySync } from 'rolldown/utils'
import type { Project } from './project.ts'

export interface Bundle {
  readonly code: string
  readonly gzippedBytes: number
  /** What it would still load when it runs. */
  readonly imports: readonly string[]
  readonly warnings: readonly string[]
  /** The modules that something is left of, and what is left. */
  readonly modules: readonly { readonly path: string; readonly code: string }[]
}

export async function bundled(project: Project, code: string, format: 'esm' | 'iife' = 'esm'): Promise<Bundle> {
  const entry = join(project.folder, 'entry.mjs')
  writeFileSync(entry, code)
  const warnings: string[] = []
  const { output } = await build({
    input: entry,
    cwd: project.folder,
    platform: 'browser',
    write: false,
    onLog: (level, { message }) => warnings.push(`${level}: ${message}`),
    output: { format, minify: true },
  })
  const [chunk] = output
  return {
    code: chunk.code,
    gzippedBytes: gzippedBytes(chunk.code),
    imports: [...chunk.imports, ...chunk.dynamicImports],
    warnings,
    modules: modulesOf(chunk, project),
  }
}

function gzippedBytes(code: string): number {
  return gzipSync(code, { level: 9 }).length
}

function modulesOf({ modules }: OutputChunk, project: Project): Bundle['modules'] {
  return Object.entries(modules)
    .map(([path, { code }]) => ({ path: relative(project.package, path), code: code ?? '' }))
    .filter(({ code }) => code !== '')
}

/**
 * Where the bytes are: for each module, by how much the whole would shrink without it. Near enough
 * to choose where to look.
 */
export function weights({ modules }: Bundle): string {
  const minified = modules.map(({ path, code }) => ({ path, code: minifySync(path, code, { compress: { unused: false } }).code }))
  const whole = gzippedBytes(minified.map(({ code }) => code).join(''))
  const costs = minified.map((module) => {
    const others = minified.filter((other) => other !== module)
    return { path: module.path, bytes: whole - gzippedBytes(others.map(({ code }) => code).join('')) }
  })
  return costs
    .sort((a, b) => b.bytes - a.bytes)
    .map(({ path, bytes }) => `${bytes} ${path}`)
    .join('\n')
}
