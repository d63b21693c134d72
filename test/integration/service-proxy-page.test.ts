import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { proxyMetrics } from '../../src/addon/service-proxy/metrics.ts'
import { addonTokenIssuer, addonTokenType } from '../../src/addon/token/index.ts'
import { addonOptions } from '../../src/apiserver/features/options.ts'
import { MetricsRegistry } from '../../src/core/index.ts'

const root = new URL('../../', import.meta.url)
const page = await readFile(new URL('docs/features/addons.md', root), 'utf8')
const sourceOf = (path: string): Promise<string> => readFile(new URL(`src/${path}`, root), 'utf8')

const annotationsIn = (source: string): string[] =>
  [...source.matchAll(/'((?:sallyport\.dev|alpha\.service-proxy\.kubernetes\.io)\/[a-z-]+)'/g)].map(
    ([, name = '']) => name,
  )

test('the page names every annotation that a Service may have, and every note of the audit', async () => {
  const files = [
    'addon/service-proxy/add-auth.ts',
    'addon/service-proxy/target.ts',
    'addon/service-proxy/service-proxy.ts',
  ]
  const names = (await Promise.all(files.map(sourceOf))).flatMap(annotationsIn)
  expect(names.length).toBeGreaterThanOrEqual(8)
  for (const name of names) expect(page).toContain(name)
  const limits = annotationsIn(await sourceOf('addon/service-proxy/limits.ts'))
  expect(limits).toHaveLength(8)
  for (const name of limits) expect(page).toContain(name.replace('sallyport.dev/proxy', ''))
})

test('the page names every reason by which a session ends', async () => {
  const [, union = ''] =
    /type CutReason =([^]*?)\n\n/.exec(await sourceOf('addon/service-proxy/session.ts')) ?? []
  const reasons = [...union.matchAll(/'([a-z-]+)'/g)].map(([, reason = '']) => reason)
  expect(reasons.length).toBeGreaterThanOrEqual(8)
  for (const reason of reasons) expect(page).toContain(`\`${reason}\``)
})

test('the page names every metric', () => {
  const registry = new MetricsRegistry()
  proxyMetrics(registry, () => 0)
  const names = [...registry.expose().matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name)
  expect(names).toHaveLength(4)
  for (const name of names) expect(page).toContain(name)
})

test('the page describes the token as it is, and weighs the alternative [ADDON-R45]', () => {
  expect(page).toContain(`\`typ\` \`${addonTokenType}\``)
  expect(page).toContain(`\`iss\` \`${addonTokenIssuer}\``)
  expect(page).toMatch(/X-Remote-User.* with a client certificate/)
})

test('all options of the proxy are of one group, which the page names', () => {
  const groups = new Set(Object.values(addonOptions).map(({ group }) => group))
  expect([...groups]).toEqual(['Add-ons'])
  expect(page).toContain('group Add-ons')
})
