/** Files that change while the service runs. */
import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'

const SETTLED_MS = 50

/**
 * Calls back soon after any of some files has changed, once for all: a file that is being written says so several times, and is empty in between.
 * The folders are watched and not the files: editors and Kubernetes put other files in their place.
 */
export function watchFiles(files: readonly string[], onChange: () => void, onLost: (error: Error) => void): () => void {
  let soon: ReturnType<typeof setTimeout> | undefined
  const changed = () => {
    clearTimeout(soon)
    soon = setTimeout(onChange, SETTLED_MS)
  }
  const watchers = [...new Set(files.map((file) => dirname(file)))].map((folder) => {
    const names = files.filter((file) => dirname(file) === folder).map((file) => basename(file))
    const watcher = watch(folder, { persistent: false }, (_event, name) => {
      // What Kubernetes swaps is a link beside them.
      if (name === null || names.includes(name) || name.startsWith('..')) changed()
    })
    return watcher.on('error', onLost)
  })
  return () => {
    clearTimeout(soon)
    for (const watcher of watchers) watcher.close()
  }
}
