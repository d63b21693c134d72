import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const here = import.meta.dirname
const sources = ['.', '../grpc']
  .flatMap((folder) =>
    readdirSync(join(here, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name),
    ),
  )
  .filter((name) => name.endsWith('.ts') && !/\.(test|suite)\.ts$/.test(name))
const specifiers = (name: string): string[] =>
  [
    ...readFileSync(join(here, name), 'utf8').matchAll(
      /(?:\bfrom |\bimport\(|^import )'([^']+)'/gm,
    ),
  ].flatMap(([, specifier = '']) => specifier)

test('[TUN-I17] both ends of the tunnel are made of node builtins alone: no grpc-js, no package at all', () => {
  expect(sources.length).toBeGreaterThan(80)
  const outside = sources.flatMap((name) =>
    specifiers(name)
      .filter((specifier) => !specifier.startsWith('.') && !specifier.startsWith('node:'))
      .map((specifier) => `${name} imports ${specifier}`),
  )
  expect(outside).toEqual([])
  const manifest = readFileSync(join(here, '../../package.json'), 'utf8')
  expect(manifest).not.toContain('grpc')
})
