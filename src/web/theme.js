// Runs before anything is shown: a page that turned dark later would flash.
try {
  document.documentElement.dataset.theme = localStorage.getItem('hostline theme') ?? 'auto'
} catch {
  // Without a storage the theme is that of the system.
}
