/** Language and theme: what this browser was told last, else what it asks for by itself. */
import { en, type Texts } from './text/en.ts'
import { zh } from './text/zh.ts'

export const LANGUAGES = { en: 'EN', zh: '中文' } as const
export type Language = keyof typeof LANGUAGES
export const THEMES = ['auto', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export const textsOf = (language: Language): Texts => ({ en, zh })[language]

export function storedLanguage(): Language {
  const stored = read('sluice.language')
  if (stored === 'en' || stored === 'zh') return stored
  return navigator.language.startsWith('zh') ? 'zh' : 'en'
}

export function storedTheme(): Theme {
  const stored = read('sluice.theme')
  return THEMES.find((theme) => theme === stored) ?? 'auto'
}

export function store(name: 'language' | 'theme', value: string): void {
  try {
    localStorage.setItem(`sluice.${name}`, value)
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
}

function read(name: string): string | null {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}
