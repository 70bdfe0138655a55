/** Files that change while the service runs. */
import { statSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'

const SETTLED_MS = 50

/** False for what is not there. */
export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/**
 * Calls back soon after any of some files, or anything in some folders, has changed, once for all:
 * a file that is being written says so several times, and is empty in between. The folders are
 * watched and not the files: editors and Kubernetes put other files in their place.
 */
export function watchFiles(paths: readonly string[], onChange: () => void, onLost: (error: Error) => void): () => void {
  let soon: ReturnType<typeof setTimeout> | undefined
  const changed = () => {
    clearTimeout(soon)
    soon = setTimeout(onChange, SETTLED_MS)
  }
  const watchers = [...namesByFolder(paths)].map(([folder, names]) => {
    const watcher = watch(folder, { persistent: false }, (_event, name) => {
      // What Kubernetes swaps is a link beside them.
      if (name === null || names.has(name) || names.has(ANY) || name.startsWith('..')) changed()
    })
    return watcher.on('error', onLost)
  })
  return () => {
    clearTimeout(soon)
    for (const watcher of watchers) watcher.close()
  }
}

/** In place of a name: whatever is in the folder. */
const ANY = ''

function namesByFolder(paths: readonly string[]): Map<string, Set<string>> {
  const folders = new Map<string, Set<string>>()
  for (const path of paths) {
    const [folder, name] = isFolder(path) ? [path, ANY] : [dirname(path), basename(path)]
    folders.set(folder, (folders.get(folder) ?? new Set()).add(name))
  }
  return folders
}
