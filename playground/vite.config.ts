import { defineConfig, type Plugin } from 'vite'

/**
 * Browsers load modules, and whatever is asked for across origins, from no file: opened as one, the
 * page would stay empty. All is one script, which imports and exports nothing, so a plain one does
 * as well; in a function, so that its names are its own.
 */
const plainScript: Plugin = {
  name: 'plain-script',
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') chunk.code = `(()=>{${chunk.code}\n})()`
  },
  transformIndexHtml: {
    order: 'post',
    handler: (html) => html.replace('<script type="module" crossorigin', '<script defer').replaceAll(' crossorigin', ''),
  },
}

export default defineConfig({
  root: import.meta.dirname,
  // Relative addresses, so that the built files work from any folder.
  base: './',
  plugins: [plainScript],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // An inlined file would be a data: address, which the content-security-policy refuses for all
    // but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
