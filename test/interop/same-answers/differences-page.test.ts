import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { sections, sectionText } from './differences-page.ts'

const page = new URL('../../../docs/differences.md', import.meta.url)

test.each(sections)(
  'docs/differences.md has every listed difference of $title, and no others [GND-R92]',
  async (section) => {
    const text = await readFile(page, 'utf8')
    const start = text.indexOf(`## ${section.title}\n`)
    const end = text.indexOf('\n## ', start + 1)
    const written = text.slice(start, end < 0 ? undefined : end + 1)
    expect(written.trimEnd()).toBe(sectionText(section).trimEnd())
  },
)
