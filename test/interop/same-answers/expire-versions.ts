import type { LiveServer } from './live-server.ts'

/** Ours keeps so much of what was replaced. */
const historyBytes = 64 * 1024 * 1024
const largeBytes = 1_000_000

/** Replaces more than the history of our server keeps, so that all versions so far are too old for it. */
export async function outgrowHistory(server: LiveServer): Promise<void> {
  const path = '/api/v1/namespaces/kube-public/configmaps'
  const name = 'same-answers-large'
  const large = (letter: string) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { large: letter.repeat(largeBytes) },
  })
  await server.answer({ method: 'POST', path, body: large('a') }, '')
  for (let left = historyBytes; left >= 0; left -= largeBytes) {
    const letter = String.fromCharCode(0x62 + ((left / largeBytes) & 1))
    const { code, text } = await server.answer(
      { method: 'PUT', path: `${path}/${name}`, body: large(letter) },
      '',
    )
    if (code !== 200) throw new Error(`cannot outgrow the history: ${text}`)
  }
  await server.answer({ method: 'DELETE', path: `${path}/${name}` }, '')
}

/** Compacts etcd to its newest revision, through its JSON gateway. */
export async function compactEtcd(address: string): Promise<void> {
  const call = async (path: string, body: object): Promise<{ header: { revision: string } }> => {
    const response = await fetch(`${address}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`etcd said ${response.status} to ${path}`)
    return (await response.json()) as { header: { revision: string } }
  }
  const { header } = await call('/v3/kv/range', { key: 'AA==' })
  await call('/v3/kv/compaction', { revision: header.revision, physical: true })
}
