import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const source = fileURLToPath(new URL('..', import.meta.url))

function productionFiles(room: string): string[] {
  return readdirSync(join(source, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\.(test|suite)\.ts$/.test(name))
    .map((name) => join(source, room, name))
}

test('tokens are signed and verified by node:crypto, without packages and without arithmetic [ISS-R24]', () => {
  const files = ['jose', 'issuer'].flatMap(productionFiles)
  const texts = files.map((path) => readFileSync(path, 'utf8'))
  const imports = texts.flatMap((text) =>
    [...text.matchAll(/(?:from|import\() ?'([^']+)'/g)].map(([, name = '']) => name),
  )
  const packages = imports.filter((name) => !name.startsWith('.') && !name.startsWith('node:'))
  const homemade = texts.filter((text) => /BigInt\(|\*\* ?\d+n|\bmodPow\b/.test(text))
  expect([files.length > 20, imports.includes('node:crypto')]).toEqual([true, true])
  expect([packages, homemade]).toEqual([[], []])
})
