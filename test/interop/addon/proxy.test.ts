import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import { outwardAddress } from '../../support/service-proxy-lab.ts'
import type { Answer, Ask } from '../same-answers/ask.ts'
import { differences, requests } from './proxy-cases.ts'
import { ProxyPair } from './proxy-pair.ts'

const isHere =
  outwardAddress !== undefined &&
  [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
    (peer) => pathOrReason(peer) !== undefined,
  )
if (outwardAddress === undefined) console.warn('skipped: this machine has no address of its own')

const comparedHeaders = [
  'location',
  'set-cookie',
  'content-type',
  'cache-control',
  'access-control-allow-origin',
  'access-control-allow-methods',
  'access-control-max-age',
  'www-authenticate',
  'retry-after',
]

/** The links of a page in their order: how the rest is written is not what is compared. */
const linksOf = (html: string): string[] =>
  [...html.matchAll(/\s(?:href|src|action|background|data|poster)="([^"]*)"/g)].map(
    ([, url = '']) => url,
  )

function bodyOf({ text, json, headers }: Answer): unknown {
  if (typeof json === 'object' && json !== null) {
    const { message, reason, code, ...rest } = json as Record<string, unknown>
    return 'status' in rest ? { message, reason, code } : json
  }
  const isHtml = headers.get('content-type')?.[0]?.startsWith('text/html')
  return isHtml ? linksOf(text) : text
}

function shown(answer: Answer): object {
  const headers = comparedHeaders.flatMap((name) => {
    const values = answer.headers.get(name)
    return values ? [[name, values]] : []
  })
  return { code: answer.code, headers: Object.fromEntries(headers), body: bodyOf(answer) }
}

describe.skipIf(!isHere)('the service proxy of kube-apiserver 1.36 and ours', () => {
  let pair: ProxyPair
  beforeAll(async () => {
    pair = await ProxyPair.start(outwardAddress ?? '')
  })
  afterAll(() => pair?.stop())

  test.each(requests)('answer alike: $name [ADDON-P1]', async ({ name, ...ask }) => {
    const ours = shown(await pair.ours.answer(ask as Ask, ''))
    const theirs = shown(await pair.theirs.answer(ask as Ask, ''))
    const known = differences.find((each) => each.name === name)
    expect(ours).toEqual({ ...theirs, ...known?.ours })
  })

  test('every known difference is one', async () => {
    for (const { name, ours } of differences.filter(({ isUsual }) => !isUsual)) {
      const { name: _, ...ask } = requests.find((each) => each.name === name) ?? { name: '' }
      const theirs = shown(await pair.theirs.answer(ask as Ask, ''))
      expect([name, theirs]).not.toEqual([name, { ...theirs, ...ours }])
    }
  })
})
