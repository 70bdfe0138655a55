import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  // Relative addresses, so that the built files work from any folder.
  base: './',
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    // An inlined file would be a data: address, which the content-security-policy refuses for all but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
})
