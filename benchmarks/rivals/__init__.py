"""What the literature offers for the same job at the same promise, each rival written from its paper.

One module for each family. Every rival takes public numbers and true counts and returns simulated results for many runs
at once; its noise is drawn by NumPy, so nothing here is fit for a release. ``tests/rivals`` checks each rival's promise
by enumeration or by its sensitivity, and a number or a property that its paper states.

=============  ==================================================================================================
module         rivals
=============  ==================================================================================================
pairs          noise on every pair + Kemeny; KwikSort (Hay, Elagina and Miklau 2017; Alabi et al. 2022)
exponential    Kemeny's order by the exponential mechanism (Hay et al. 2017)
footrule       least footrule, hence 2-approximate Kemeny (Hillebrand et al. 2025, arXiv 2511.11319)
scores         Borda with Laplace noise; with K-norm noise (Joseph and Yu 2023)
condorcet      the Condorcet method with noise (Li et al. 2023, arXiv 2206.13081)
top_sets       subsets by canonical loss (Shekelyan and Loukides 2022, arXiv 2201.13376); one-shot exponential noise
local          one pair by randomised response (Yan et al. 2020, arXiv 1908.04486; Xu, Sun and Cheng 2024,
               arXiv 2402.16792); weighted sampling and the additive mechanism (Wang et al. 2019, arXiv 1908.04920)
=============  ==================================================================================================
"""
