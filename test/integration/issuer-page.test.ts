import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'

const read = (path: string) => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

describe('the page of the issuer', () => {
  let page = ''
  let proven: Set<string>
  beforeAll(async () => {
    page = (await read('features/issuer.md')).replaceAll('\n', ' ')
    const lines = (await read('requirements/issuer.md')).split('\n')
    const closed = lines.filter((line) => !line.endsWith('(open)'))
    proven = new Set(closed.flatMap((line) => /^- (ISS-\w+):/.exec(line)?.[1] ?? []))
  })

  test.each([
    ['what service accounts learn from the documents [ISS-R19]', 'They learn nothing new from it'],
    ['the non-goals [ISS-R23]', 'no login, no authorization, token or userinfo endpoints'],
    ['what outsiders cannot see, and what to use instead [ISS-P7]', 'POST a TokenReview'],
    ['what libraries and clouds need [ISS-R33]', 'What relying parties need'],
  ])('says %s', (_what, words) => {
    expect(page).toContain(words)
  })

  test('is for operators, workloads and relying parties [ISS-R36]', async () => {
    const headings = [...(await read('features/issuer.md')).matchAll(/^## (.+)$/gm)]
    expect(headings.map(([, heading]) => heading)).toEqual(
      expect.arrayContaining(['For operators', 'For workloads', 'For relying parties']),
    )
  })

  test('names a proven requirement for each threat [ISS-R28]', async () => {
    const [, section = ''] = (await read('features/issuer.md')).split('## Threats\n')
    const rows = section.split('\n## ')[0]!.trim().split('\n').slice(2)
    const unproven = rows.filter((row) => {
      const numbers = row.match(/ISS-[A-Z]\d+/g) ?? []
      return numbers.length === 0 || numbers.some((number) => !proven.has(number))
    })
    expect([rows.length > 5, unproven]).toEqual([true, []])
  })
})
