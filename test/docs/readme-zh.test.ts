/** The Chinese README keeps in step with the English one: the same headings, level by level, and the same code. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

const english = partsOf('README.md')
const chinese = partsOf('README.zh-CN.md')

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
    links: [...prose.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target as string),
  }
}

describe('README.zh-CN.md', () => {
  test('has the headings of README.md, in their order and of their levels', () => {
    expect(english.headings.length).toBeGreaterThan(3)
    expect(chinese.headings).toEqual(english.headings)
  })

  test('has the code blocks of README.md, letter for letter', () => {
    expect(english.blocks.length).toBeGreaterThan(3)
    expect(chinese.blocks).toEqual(english.blocks)
  })

  test('links to the same pages, but for each other', () => {
    const others = ({ links }: Parts) => links.filter((target) => !target.startsWith('README')).sort()
    expect(others(chinese)).toEqual(others(english))
  })
})
