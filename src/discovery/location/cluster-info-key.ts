/** Where a cluster says how it is reached and whom to trust. */
export const clusterInfoKey = { namespace: 'kube-public', name: 'cluster-info' } as const
