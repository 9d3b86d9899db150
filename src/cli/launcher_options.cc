#include "cli/launcher_options.h"

#include "cli/words.h"

namespace spillway::cli {
namespace {

// Which families know an option.
enum FamilyBit : unsigned { kHydra = 1, kPrrte = 2, kOrte = 4, kSrun = 8, kOpenMpi = kPrrte | kOrte };

unsigned bit_of(LauncherFamily family) {
  switch (family) {
    case LauncherFamily::hydra:
      return kHydra;
    case LauncherFamily::prrte:
      return kPrrte;
    case LauncherFamily::orte:
      return kOrte;
    case LauncherFamily::srun:
      return kSrun;
    case LauncherFamily::none:
      break;
  }
  return 0;
}

// Launcher options by the number of words that follow them. Sources: MPICH src/pm/hydra/mpiexec/options.c
// with Intel MPI's additions; PRRTE and ORTE src/mca/schizo; srun(1).
struct OptionGroup {
  unsigned families;
  int values;
  std::string_view names;
};
constexpr OptionGroup kOptions[] = {
    {kHydra, 4, "pmi-args"},
    {kHydra, 1,
     "n np f hostfile machinefile machine machines machinelist hosts host hostlist hosts-group "
     "rankmap ppn perhost grr ranks-per-proc genvlist envlist wdir gwdir path gpath umask gumask "
     "output-from prepend-pattern outfile-pattern errfile-pattern outfile errfile launcher "
     "launcher-exec bootstrap bootstrap-exec bootstrap-exec-args rmk bind-to binding map-by membind "
     "topolib demux iface nameserver order-nodes localhost usize gpus-per-proc gpu-subdevs-per-proc "
     "configfile memory-alloc-kinds gtool gtoolfile tmpdir use-app-topology soft arch "
     "ckpoint-interval"},
    {kHydra, 0,
     "genvnone genvall envnone envall enable-x disable-x disable-auto-cleanup enable-auto-cleanup "
     "prepend-rank l disable-hostname-propagation enable-hostname-propagation hybrid-hosts info "
     "pmi-port print-all-exitcodes profile skip-launch-node verbose v V version h help rr trace t "
     "check-mpi check_mpi trace-imbalance aps mps ilp64 noconf nolocal silent-abort print-rank-map "
     "validate cleanup gdb s-all psm psm2 ib rdma dapl ofi"},
    {kOpenMpi, 2, "mca gmca omca gomca prtemca pmixmca am-mca"},
    {kOpenMpi, 1,
     "n np c N x host H hostfile machinefile default-hostfile wdir wd path map-by rank-by bind-to "
     "mapping-policy report-pid report-uri personality tune launch-agent max-vm-size tmpdir prefix "
     "forward-signals xterm timeout spawn-timeout output stdin preload-files pset display "
     "runtime-options max-restarts with-ft initial-errhandler memory-alloc-kinds arch file "
     "output-directory output-filename cpu-set cpu-list cpus-per-proc cpus-per-rank npernode "
     "npersocket ppr amca am rankfile rf stream-buffering hnp xml-file ompi-server cf cartofile "
     "debugger report-events slot-list"},
    {kOpenMpi, 0,
     "h help V version v verbose q quiet p parseable parsable debug-daemons debug-daemons-file "
     "debug-devel d leave-session-attached noprefix allow-run-as-root report-child-jobs-separately "
     "stop-on-exec stop-in-init stop-in-app report-state-on-timeout get-stack-traces "
     "no-aggregate-help s preload-binary show-progress fwd-environment do-not-launch do-not-resolve "
     "enable-recovery disable-recovery continuous display-comm display-comm-finalize soft xml "
     "tag-output timestamp-output merge-stderr-to-stdout display-devel-map report-bindings "
     "display-map display-allocation display-devel-allocation display-diffable-map nolocal "
     "oversubscribe nooversubscribe use-hwthread-cpus bind-to-core bind-to-socket bynode bycore "
     "byslot pernode output-proctable debug tv index-argv-by-rank set-cwd-to-session-dir use-regexp "
     "novm"},
    {kPrrte, 1, "dvm display-topo"},
    {kOrte, 0, "dvm display-topo terminate"},
    {kSrun, 1,
     "account acctg-freq bb bbf bcast begin chdir cluster-constraint clusters comment constraint "
     "container container-id core-spec cores-per-socket cpu-bind cpu_bind cpu-freq cpus-per-gpu "
     "cpus-per-task deadline delay-boot dependency distribution epilog error exclude export extra "
     "extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres "
     "gres-flags het-group pack-group hint input job-name jobid licenses mail-type mail-user "
     "mcs-label mem mem-bind mem_bind mem-per-cpu mem-per-gpu mincpus mpi network nodefile nodelist "
     "nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output "
     "partition power prefer priority profile prolog qos relative reservation signal slurmd-debug "
     "sockets-per-node switches task-epilog task-prolog tasks-per-node thread-spec threads "
     "threads-per-core time time-min tmp tres-bind tres-per-task tree-width treewidth uid gid wait "
     "wckey"},
    {kSrun, 0,
     "compress contiguous disable-status exact exclusive external-launcher get-user-env help hold "
     "ignore-pbs immediate interactive kill-on-bad-exit label multi-prog nice no-allocate no-kill "
     "overcommit overlap oversubscribe preserve-env propagate pty quiet quit-on-interrupt reboot "
     "resv-ports send-libs share spread-job test-only unbuffered usage use-min-nodes verbose version "
     "wait-all-nodes x11"},
};

}  // namespace

bool is_openmpi(LauncherFamily family) { return (bit_of(family) & kOpenMpi) != 0; }

std::optional<int> option_values(LauncherFamily family, std::string_view name) {
  for (const OptionGroup& group : kOptions) {
    if ((group.families & bit_of(family)) != 0 && lists_word(group.names, name)) return group.values;
  }
  return std::nullopt;
}

}  // namespace spillway::cli
