/** A Chinese page keeps in step with its English one: the same headings, level by level, the same code, and the same links. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const PAGES = ['README', 'docs/guides/coming-from']

interface Parts {
  readonly headings: readonly string[]
  readonly blocks: readonly string[]
  readonly links: readonly string[]
}

function partsOf(page: string): Parts {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')
  const prose = text.replace(/^```.*?^```/gms, '')
  return {
    headings: [...prose.matchAll(/^#+(?= )/gm)].map(([level]) => level),
    blocks: [...text.matchAll(/^```.*?^```/gms)].map(([block]) => block),
    // Where a page is there in both languages, each links to its own.
    links: [...prose.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => (target as string).replace('.zh-CN.md', '.md')).sort(),
  }
}

describe.each(PAGES)('%s.zh-CN.md', (page) => {
  const english = partsOf(`${page}.md`)
  const chinese = partsOf(`${page}.zh-CN.md`)

  test('has the headings of the English page, in their order and of their levels', () => {
    expect(english.headings.length).toBeGreaterThan(3)
    expect(chinese.headings).toEqual(english.headings)
  })

  test('has its code blocks, letter for letter', () => {
    expect(english.blocks.length).toBeGreaterThan(3)
    expect(chinese.blocks).toEqual(english.blocks)
  })

  test('links to the same pages', () => {
    expect(chinese.links).toEqual(english.links)
  })
})
