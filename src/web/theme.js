// Runs first. Where storage is forbidden, a page has its own.
for (const name of ['localStorage', 'sessionStorage']) {
  try {
    window[name]
  } catch {
    const value = {
      getItem: (key) => value[key],
      setItem: (key, text) => (value[key] = text),
      removeItem: (key) => delete value[key],
    }
    Object.defineProperty(window, name, { value })
  }
}
document.documentElement.dataset.theme = localStorage.getItem('hostline theme') ?? 'auto'
