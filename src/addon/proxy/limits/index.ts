export { type Admission, Budgets, type SessionKind } from './budgets.ts'
export { PageWindows } from './page-windows.ts'
export { limitsOfService, type ProxyLimits } from './proxy-limits.ts'
