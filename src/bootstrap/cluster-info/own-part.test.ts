import { describe, expect, test } from 'vitest'
import type { ClusterLocation } from '../../kubeconfig/index.ts'
import { mergedLocation, operatorChanges, ownPartOf } from './cluster-info.ts'
import { labRoot } from './location.suite.ts'

const now = Date.now()
const [a, b, foreign] = await Promise.all(['a', 'b', 'foreign'].map((name) => labRoot(name, now)))
if (!a || !b || !foreign) throw new Error('there are three roots')

const at = (server: string, ...pems: string[]): ClusterLocation => ({
  addresses: [server],
  clusterId: 'id',
  ...(pems.length > 0 && { rootsPem: pems.join('') }),
})

describe('what the server keeps in cluster-info [DISC-S5, DISC-R46]', () => {
  test.each([
    ['nothing changed', at('https://1', a.pem), at('https://1', a.pem), at('https://1', a.pem)],
    ['the server moved', at('https://1', a.pem), at('https://2', a.pem), at('https://2', a.pem)],
    [
      'a new root begins to count',
      at('https://1', a.pem),
      at('https://1', a.pem, b.pem),
      at('https://1', a.pem, b.pem),
    ],
    [
      'an operator set the address, and the server moved',
      at('https://lb', a.pem),
      at('https://2', a.pem),
      at('https://lb', a.pem),
    ],
    [
      'an operator set the address, and a root is new',
      at('https://lb', a.pem),
      at('https://1', a.pem, b.pem),
      at('https://lb', a.pem, b.pem),
    ],
    [
      'an operator added a root, and one is replaced',
      at('https://1', a.pem, foreign.pem),
      at('https://1', b.pem),
      at('https://1', b.pem, foreign.pem),
    ],
    ['an operator removed the root', at('https://1'), at('https://1', a.pem), at('https://1')],
    [
      'an operator removed the root, and one is new',
      at('https://1', foreign.pem),
      at('https://1', a.pem, b.pem),
      at('https://1', b.pem, foreign.pem),
    ],
    [
      'an operator has added the next root by hand',
      at('https://1', a.pem, b.pem),
      at('https://1', a.pem, b.pem),
      at('https://1', a.pem, b.pem),
    ],
  ])('when %s', (_name, present, own, expected) => {
    const noted = ownPartOf(at('https://1', a.pem))
    expect(mergedLocation(present, noted, own)).toEqual(expected)
  })

  test('leaves a document alone that it has not made, but for the id', () => {
    const merged = mergedLocation(
      at('https://x', foreign.pem),
      { addresses: [], roots: [] },
      {
        ...at('https://1'),
        clusterId: 'new',
      },
    )
    expect(merged).toEqual({ ...at('https://x', foreign.pem), clusterId: 'new' })
  })

  test('keeps what an operator says of the roots of the system', () => {
    const present = { ...at('https://1', a.pem), systemRoots: true }
    const merged = mergedLocation(present, ownPartOf(present), at('https://2', a.pem))
    expect(merged).toEqual({ ...at('https://2', a.pem), systemRoots: true })
  })

  test('knows what was changed', () => {
    const noted = ownPartOf(at('https://1', a.pem))
    expect(operatorChanges(at('https://1', a.pem), noted)).toEqual({
      addresses: false,
      roots: false,
      systemRoots: false,
    })
    expect(operatorChanges({ ...at('https://2'), systemRoots: true }, noted)).toEqual({
      addresses: true,
      roots: true,
      systemRoots: true,
    })
  })
})
