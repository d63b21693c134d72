import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { knownDifferences } from './known-differences.ts'

const page = new URL('../../../docs/features/credentials.md', import.meta.url)

test('docs/features/credentials.md has every difference to kubectl, and no others [CRED-I1]', async () => {
  const text = await readFile(page, 'utf8')
  const [, section = ''] = text.split('\n## Differences to kubectl\n')
  const rows = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => /^\| \S/.test(line))
  const expected = knownDifferences.map(
    ({ what, kubectl, sallyport, why }) => `| ${what} | ${kubectl} | ${sallyport} | ${why} |`,
  )
  expect(rows).toEqual(['| what | kubectl | Sallyport | why |', ...expected])
})
