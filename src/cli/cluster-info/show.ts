import type { ClusterInfo, RootReport } from '../../bootstrap/index.ts'
import { clusterSourceOptions, openClusterSource, outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'

/** cluster-info for a program. */
export const clusterInfoAsJson = (
  { location, signedBy, changes }: ClusterInfo,
  roots: readonly RootReport[],
) => ({
  clusterId: location.clusterId,
  addresses: location.addresses,
  roots,
  systemRoots: location.rootsPem === undefined || location.systemRoots === true,
  signedBy,
  setByOperator: changes,
})

function asText(info: ClusterInfo, roots: readonly RootReport[]): string {
  const { location, signedBy, changes } = info
  const by = (changed: boolean): string => (changed ? ' (set by an operator)' : '')
  const rootLines = roots.map(
    ({ pin, subject, validFrom, validTo }) =>
      `  ${pin}\n    ${subject}, valid from ${validFrom} to ${validTo}`,
  )
  const system =
    location.rootsPem === undefined
      ? ["  those of the client's system"]
      : location.systemRoots
        ? ["  and those of the client's system"]
        : []
  return [
    `cluster id   ${location.clusterId ?? '-'}`,
    `addresses${by(changes.addresses)}`,
    ...location.addresses.map((address) => `  ${address}`),
    `roots${by(changes.roots || changes.systemRoots)}`,
    ...rootLines,
    ...system,
    `signed by    ${signedBy.map((id) => `token ${id}`).join(', ') || 'no token'}`,
    '',
  ].join('\n')
}

/** `sallyport cluster-info show`. */
export const clusterInfoShowCommand = defineCommand({
  command: 'sallyport cluster-info show',
  summary:
    'Show what the cluster says of itself: id, addresses, roots with pins, who has signed it',
  options: { ...clusterSourceOptions, ...outputOption },
  examples: [
    { line: 'sallyport cluster-info show', does: 'what joining machines and clients are told' },
    {
      line: 'sallyport cluster-info show --output json | jq -r .roots[].pin',
      does: 'the pins for a join line',
    },
  ],
  run: async ({ options: { output, ...source } }, io) => {
    const { readClusterInfo, rootReports } = await import('../../bootstrap/index.ts')
    const view = await openClusterSource(source, io)
    const info = await readClusterInfo(view, io.drain)
    const roots = rootReports(info.location.rootsPem)
    io.stdout(
      output === 'json'
        ? `${JSON.stringify(clusterInfoAsJson(info, roots))}\n`
        : asText(info, roots),
    )
  },
})
