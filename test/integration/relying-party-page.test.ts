import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { serverOptions } from '../../src/apiserver/options/index.ts'
import { relyingPartyNames } from '../../src/issuer/doctor/index.ts'

const read = (path: string) => readFile(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

describe('the page of the relying party', () => {
  let page = ''
  let proven: Set<string>
  beforeAll(async () => {
    page = await read('features/relying-party.md')
    const lines = (await read('requirements/issuer.md')).split('\n')
    const closed = lines.filter((line) => !line.endsWith('(open)'))
    proven = new Set(closed.flatMap((line) => /^- (ISS-\w+):/.exec(line)?.[1] ?? []))
  })

  test('says what cannot be seen from outside and when to ask a TokenReview [ISS-P7]', () => {
    expect(page).toContain('## What you cannot see from outside')
    expect(page).toContain('accepted here until its `exp`')
    expect(page).toContain('TokenReview')
  })

  test('has every flag for users of a provider [ISS-P8]', () => {
    const flags = Object.keys(serverOptions).filter((name) => name.startsWith('oidc-'))
    expect(flags.filter((flag) => !page.includes(`--${flag}`))).toEqual([])
    expect(flags).toHaveLength(9)
  })

  test('names a proven requirement for each threat [ISS-R28]', () => {
    const [, section = ''] = page.split('## Threats\n')
    const rows = section.split('\n## ')[0]!.trim().split('\n').slice(2)
    const unproven = rows.filter((row) => {
      const numbers = row.match(/ISS-[A-Z]\d+/g) ?? []
      return numbers.length === 0 || numbers.some((number) => !proven.has(number))
    })
    expect([rows.length > 5, unproven]).toEqual([true, []])
  })

  test('relying parties of the table of the issuer are known to the doctor [ISS-P5]', () => {
    expect(relyingPartyNames).toEqual(
      expect.arrayContaining(['aws', 'gcp', 'azure', 'vault', 'go-oidc', 'pyjwt', 'jose']),
    )
  })
})
